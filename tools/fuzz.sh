#!/bin/sh
# Runs every fuzz target of the module for the given time each: fuzz.sh 20s.
# go test -fuzz takes only one target at a time.
set -eu

for package in $(go list ./...); do
	for target in $(go test -list '^Fuzz' "$package" | grep '^Fuzz' || true); do
		echo "== $package $target"
		go test -run '^$' -fuzz "^$target\$" -fuzztime "${1:?say for how long, as in 20s}" "$package"
	done
done
