// Package relay carries the messages of an outbox to destinations that are named
// by text, as a person writes them on a command line: it opens the database
// (Open) and the destinations (Opener), and runs one outbox.Relay for each of
// them (New). ringi relay, the relay inside ringi serve and ringi bench outbox
// stand on it; a service in Go that knows its sink uses package outbox directly.
//
// # Destinations
//
// One a line, each in the form
//
//	[NAME=]stdout
//	[NAME=]file:PATH
//	[NAME=]kafka://HOST:PORT[,HOST:PORT…][?topic-prefix=shop.&headers=debezium&tls=true&user=U&password-file=F…]
//	[NAME=]nats://HOST[:PORT][,HOST…][?stream=S&creds=F…]
//	[NAME=]amqp://HOST[:PORT][/VHOST][?exchange=E&user=U&password-file=F…]
//	[NAME=]redis://HOST[:PORT][/DB][?stream-prefix=shop.&user=U&password-file=F…]
//	[NAME=]webhook+https://HOST/PATH?secret-file=F…
//	[NAME=]ringi+https://HOST[:PORT][?key-file=F]
//
// NAME is the destination that the message names, as Routes gave it to it when it
// was written; without a name it is the one for messages that name none. Each has
// a relay and a circuit of its own, so that one that is down or slow holds up no
// other.
//
// # What is kept out of a command line
//
// Passwords, secrets and keys are named by files, since every user of a machine
// can read the arguments of all processes. What a Sink says of itself holds none.
package relay
