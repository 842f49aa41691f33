#!/bin/sh
# Makes sure that there is a C compiler: the race detector, which make test uses,
# links against C. ringi itself is built without it.
set -eu

cc=$(go env CC)
command -v "${cc%% *}" >/dev/null 2>&1 && exit 0

if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
	echo "make test needs a C compiler for the race detector; installing gcc" >&2
	# A package list that cannot be renewed may still be good enough.
	apt-get update -qq || true
	if DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends gcc libc6-dev >&2 &&
		command -v "${cc%% *}" >/dev/null 2>&1; then
		exit 0
	fi
fi

cat >&2 <<TXT
make test runs with the race detector, and that needs a C compiler ($cc), which is not here.
Install one and run it again:
  Debian, Ubuntu   sudo apt-get install gcc libc6-dev
  Fedora           sudo dnf install gcc
  Alpine           sudo apk add gcc musl-dev
  macOS            xcode-select --install
Without one, make check runs the same tests without the race detector.
TXT
exit 1
