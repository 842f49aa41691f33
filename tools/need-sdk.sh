#!/bin/sh
# Makes sure that what tests the worker libraries of other languages is there:
# python3 and node, and the type checkers that the libraries pin, in bin/sdk-python
# and sdk/typescript/node_modules. What is there already costs no time.
set -eu
cd "$(dirname "$0")/.."

packages=
python3 -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 9))' 2>/dev/null || packages="python3 python3-venv"
node -e 'process.exit(process.versions.node.split(".")[0] >= 18 ? 0 : 1)' 2>/dev/null || packages="$packages nodejs npm"
command -v npm >/dev/null 2>&1 || packages="$packages npm"

if [ -n "$packages" ] && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
	echo "make test needs $packages for the worker libraries; installing them" >&2
	# A package list that cannot be renewed may still be good enough.
	apt-get update -qq || true
	# shellcheck disable=SC2086 # several packages
	DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $packages >&2 && packages=
fi
if [ -n "$packages" ]; then
	cat >&2 <<TXT
The tests of the worker libraries (sdk/) run them for real, and that needs
Python 3.9 or newer with venv, Node 18 or newer, and npm. Not here:$(printf ' %s' $packages)
Install them and run it again:
  Debian, Ubuntu   sudo apt-get install python3 python3-venv nodejs npm
  Fedora           sudo dnf install python3 nodejs npm
  Alpine           sudo apk add python3 nodejs npm
  macOS            brew install python node
TXT
	exit 1
fi

# without NAME says what could not be fetched.
without() {
	echo "$1 could not be installed: it is fetched once, so this needs a network (or a mirror in the settings of pip and npm)" >&2
	exit 1
}

if ! cmp -s sdk/python/requirements-dev.txt bin/sdk-python/requirements-dev.txt; then
	{ python3 -m venv bin/sdk-python && bin/sdk-python/bin/python -m pip install --quiet --disable-pip-version-check -r sdk/python/requirements-dev.txt; } >&2 ||
		without "the type checker of sdk/python"
	cp sdk/python/requirements-dev.txt bin/sdk-python/
fi
if ! cmp -s sdk/typescript/package-lock.json sdk/typescript/node_modules/locked.json; then
	(cd sdk/typescript && npm ci --no-audit --no-fund --loglevel=error) >&2 || without "the compiler of sdk/typescript"
	cp sdk/typescript/package-lock.json sdk/typescript/node_modules/locked.json
fi
