#!/bin/sh
# Makes sure that the brokers are there which tests run as processes of their own:
# packages of the system, and for Kafka and Debezium jars in the local repository of
# Maven. Tests would install them too, but several at a time, and apt-get waits for
# nobody while it renews its lists. What is there already costs no time.
set -eu
cd "$(dirname "$0")/.."
PATH=$PATH:/usr/sbin:/usr/local/sbin

# jars fetches what the servers in Java are made of, and ends this script.
jars() {
	go run ./servertest/fetch && exit 0
	cat >&2 <<-TXT
	The tests of outbox and inbox run a real Kafka broker and Debezium, and Maven could
	not fetch them: servertest/kafka/pom.xml and servertest/debezium/pom.xml say what.
	They are fetched once; that needs a network, or a mirror in ~/.m2/settings.xml.
	TXT
	exit 1
}

packages=
command -v redis-server >/dev/null 2>&1 || packages="redis-server"
[ -f /usr/lib/rabbitmq/bin/rabbitmq-server ] || packages="$packages rabbitmq-server"
command -v mariadbd >/dev/null 2>&1 || packages="$packages mariadb-server"
command -v java >/dev/null 2>&1 || packages="$packages default-jre-headless"
command -v mvn >/dev/null 2>&1 || packages="$packages maven"
[ -n "$packages" ] || jars

if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
	echo "make test needs $packages; installing, without starting the machine's own" >&2
	# A package list that cannot be renewed may still be good enough.
	apt-get update -qq || true
	# shellcheck disable=SC2086 # several packages
	if RUNLEVEL=1 DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $packages >&2; then
		jars
	fi
fi

cat >&2 <<TXT
The tests of outbox and inbox run real brokers and databases, and these are not here:$(printf ' %s' $packages)
Install them and run it again:
  Debian, Ubuntu   sudo apt-get install redis-server rabbitmq-server mariadb-server default-jre-headless maven
  Fedora           sudo dnf install redis rabbitmq-server mariadb-server java-headless maven
TXT
exit 1
