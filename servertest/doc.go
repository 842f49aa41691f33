// Package servertest runs the brokers and databases that tests and
// demonstrations need as processes of their own: own directory, own port on
// 127.0.0.1, nothing shared with a server that the machine runs anyway. Each can
// be crashed, stopped and started again under the programs that use it.
//
// When a program is missing, root installs it with apt-get; anybody else is told
// what to do. Kafka and Debezium are jars, which Maven fetches once into its local
// repository: kafka/pom.xml and debezium/pom.xml pin them.
//
// A server ends with the process that started it, also when that is killed: a
// shell between the two waits for the end of a pipe. Its ports are reserved for it
// until it is closed, so that it finds them free when it comes back.
//
// PostgreSQL has a package of its own, store/postgres/pgtest.
package servertest
