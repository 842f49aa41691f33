//go:build !linux

package bench

// fileSystemOf names the kind of the file system of a directory, which this
// program knows how to ask for on Linux only.
func fileSystemOf(string) (string, error) { return unknownFileSystem, nil }
