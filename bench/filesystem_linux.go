package bench

import (
	"fmt"
	"path/filepath"
	"syscall"
)

// fileSystems are the names of the kinds of file systems by their magic
// numbers, as statfs(2) lists them.
// constant: only read
var fileSystems = map[int64]string{
	0xef53: "ext4", 0x58465342: "xfs", 0x9123683e: "btrfs", 0x2fc12fc1: "zfs", 0xf2f52010: "f2fs", 0x794c7630: "overlay",
	0x01021994: "tmpfs", 0x858458f6: "ramfs", 0x6969: "nfs", 0xff534d42: "cifs", 0x65735546: "fuse", 0x01021997: "9p", 0xca451a4e: "bcachefs",
}

// fileSystemOf names the kind of the file system of a directory. One that is
// only its owner's to look into is asked through those above it.
func fileSystemOf(dir string) (string, error) {
	if dir == "" {
		return unknownFileSystem, nil
	}
	var s syscall.Statfs_t
	for {
		err := syscall.Statfs(dir, &s)
		if err == nil {
			break
		}
		up := filepath.Dir(dir)
		if err == syscall.EACCES && up != dir { //nolint:errorlint // the system call answers with the number itself
			dir = up
			continue
		}
		if err == syscall.ENOENT { //nolint:errorlint // as above
			return unknownFileSystem, nil // of another machine; of a file, making it says what is wrong
		}
		return "", fmt.Errorf("bench: look at the file system of %s: %w", dir, err)
	}
	if name := fileSystems[int64(s.Type)&0xffffffff]; name != "" { //nolint:unconvert // its type is another one on other processors
		return name, nil
	}
	return fmt.Sprintf("%#x", uint32(s.Type)), nil
}
