#!/bin/sh
# Makes sure that the brokers are there which tests run as processes of their own.
# Tests would install them too, but several at a time, and apt-get waits for nobody
# while it renews its lists. What is there already costs no time.
set -eu
PATH=$PATH:/usr/sbin:/usr/local/sbin

packages=
command -v redis-server >/dev/null 2>&1 || packages="redis-server"
[ -f /usr/lib/rabbitmq/bin/rabbitmq-server ] || packages="$packages rabbitmq-server"
[ -n "$packages" ] || exit 0

if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
	echo "make test needs $packages; installing, without starting the machine's own" >&2
	# A package list that cannot be renewed may still be good enough.
	apt-get update -qq || true
	# shellcheck disable=SC2086 # several packages
	if RUNLEVEL=1 DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $packages >&2; then
		exit 0
	fi
fi

cat >&2 <<TXT
The tests of outbox and inbox run real brokers, and these are not here:$(printf ' %s' $packages)
Install them and run it again:
  Debian, Ubuntu   sudo apt-get install redis-server rabbitmq-server
  Fedora           sudo dnf install redis rabbitmq-server
TXT
exit 1
