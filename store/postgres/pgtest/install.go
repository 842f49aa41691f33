//go:build unix

package pgtest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// programs finds the directory of the server's programs, and installs them
// when they are missing and this process may.
func programs(ctx context.Context) (string, error) {
	if dir := findPrograms(ctx); dir != "" {
		return dir, nil
	}
	apt, err := exec.LookPath("apt-get")
	if err != nil || os.Geteuid() != 0 {
		return "", errors.New("pgtest: no PostgreSQL server is installed here (initdb and postgres were looked for in PATH, at pg_config --bindir and below /usr/lib/postgresql): install one, on Debian with apt-get install postgresql")
	}
	install := func(args ...string) ([]byte, error) {
		cmd := exec.CommandContext(ctx, apt, args...)
		cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive")
		return cmd.CombinedOutput()
	}
	out, err := install("install", "-y", "--no-install-recommends", "postgresql")
	if err != nil { // a fresh machine has no lists of packages, or old ones
		if out, err = install("update"); err == nil {
			out, err = install("install", "-y", "--no-install-recommends", "postgresql")
		}
	}
	if err != nil {
		return "", fmt.Errorf("pgtest: no PostgreSQL server is installed and apt-get install postgresql failed: %w\n%s", err, out)
	}
	if dir := findPrograms(ctx); dir != "" {
		return dir, nil
	}
	return "", errors.New("pgtest: postgresql was installed and initdb is still not found: put its directory into PATH")
}

// findPrograms looks in PATH, where pg_config says, and where Debian installs;
// the newest version there comes first.
func findPrograms(ctx context.Context) string {
	var dirs []string
	if found, err := exec.LookPath("initdb"); err == nil {
		if found, err = filepath.EvalSymlinks(found); err == nil { // the others may stand only where it points to
			dirs = append(dirs, filepath.Dir(found))
		}
	}
	if out, err := exec.CommandContext(ctx, "pg_config", "--bindir").Output(); err == nil {
		dirs = append(dirs, strings.TrimSpace(string(out)))
	}
	debian, err := filepath.Glob("/usr/lib/postgresql/*/bin")
	if err == nil {
		slices.SortFunc(debian, func(a, b string) int { return version(b) - version(a) })
		dirs = append(dirs, debian...)
	}
	for _, dir := range dirs {
		if isFile(filepath.Join(dir, "initdb")) && isFile(filepath.Join(dir, "postgres")) {
			return dir
		}
	}
	return ""
}

// version is the number in a directory of Debian's.
func version(dir string) int {
	n, err := strconv.Atoi(filepath.Base(filepath.Dir(dir)))
	if err != nil {
		return 0
	}
	return n
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

// account is the user that the server runs as.
type account struct{ uid, gid int }

// serviceUser returns the user for the server when this process is root's.
func serviceUser() (*account, error) {
	if os.Geteuid() != 0 {
		return nil, nil
	}
	u, err := user.Lookup("postgres")
	if err != nil {
		return nil, fmt.Errorf("pgtest: the server refuses to run as root and there is no user postgres (%w): make one, or run this as another user", err)
	}
	uid, err := strconv.Atoi(u.Uid)
	if err != nil {
		return nil, fmt.Errorf("pgtest: user postgres: %w", err)
	}
	gid, err := strconv.Atoi(u.Gid)
	if err != nil {
		return nil, fmt.Errorf("pgtest: user postgres: %w", err)
	}
	return &account{uid, gid}, nil
}

// become makes a command run as the user.
func (a *account) become(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{}
	if a != nil {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uint32(a.uid), Gid: uint32(a.gid)}
	}
}

// own gives a directory to the user.
func (a *account) own(dir string) error {
	if a == nil {
		return nil
	}
	return os.Chown(dir, a.uid, a.gid)
}
