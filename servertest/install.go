//go:build unix

package servertest

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// places are where Debian puts servers, beside what is in PATH.
// constant: only read.
var places = []string{"/usr/sbin", "/usr/local/sbin", "/usr/lib/rabbitmq/bin"}

// lockWait is how many seconds apt-get waits for another one.
const lockWait = "DPkg::Lock::Timeout=300"

// program finds a program, and installs its package when it is missing and this
// process may.
func program(ctx context.Context, name, debian string) (string, error) {
	if path := find(name); path != "" {
		return path, nil
	}
	apt, err := exec.LookPath("apt-get")
	if err != nil || os.Geteuid() != 0 {
		return "", fmt.Errorf("servertest: no %s is installed here: install one, on Debian with apt-get install %s", name, debian)
	}
	run := func(args ...string) ([]byte, error) {
		cmd := exec.CommandContext(ctx, apt, append([]string{"-o", lockWait}, args...)...)
		// RUNLEVEL=1 keeps Debian from starting the machine's own server.
		cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive", "RUNLEVEL=1")
		return cmd.CombinedOutput()
	}
	out, err := run("install", "-y", "--no-install-recommends", debian)
	if err != nil { // a fresh machine has no lists of packages, or old ones
		if out, err = run("update"); err == nil {
			out, err = run("install", "-y", "--no-install-recommends", debian)
		}
	}
	if err != nil {
		return "", fmt.Errorf("servertest: %s is not installed and apt-get install %s failed: %w\n%s", name, debian, err, out)
	}
	if path := find(name); path != "" {
		return path, nil
	}
	return "", fmt.Errorf("servertest: %s was installed and %s is still not found: put its directory into PATH", debian, name)
}

func find(name string) string {
	if strings.HasPrefix(name, "/") {
		if info, err := os.Stat(name); err != nil || !info.Mode().IsRegular() {
			return ""
		}
		return name
	}
	if path, err := exec.LookPath(name); err == nil {
		return path
	}
	for _, dir := range places {
		if info, err := os.Stat(filepath.Join(dir, name)); err == nil && info.Mode().IsRegular() {
			return filepath.Join(dir, name)
		}
	}
	return ""
}
