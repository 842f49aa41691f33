//go:build unix

package servertest

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
)

// mariaUser is whom MariaDB runs as when root starts it, which it refuses to do as
// root: its package makes that account.
const mariaUser = "mysql"

// MariaDB starts a MariaDB server with an empty database ringi and the user root
// without a password; see MariaDBURL. What was committed survives a crash of the
// server, though not one of the machine. settings are further options of its command
// line, such as "--max-allowed-packet=1M".
func MariaDB(ctx context.Context, settings ...string) (*Server, error) {
	return start(ctx, kind{
		name:   "mariadbd",
		before: func(s *Server) error { return makeMariaDB(ctx, s) },
		args: func(s *Server) []string {
			return append([]string{
				"--no-defaults", "--datadir=" + filepath.Join(s.dir, "data"), "--port=" + strconv.Itoa(s.port), "--bind-address=127.0.0.1",
				"--socket=" + filepath.Join(s.dir, "data", "s"), "--pid-file=" + filepath.Join(s.dir, "data", "pid"), "--skip-name-resolve",
				"--innodb-flush-log-at-trx-commit=2", "--innodb-buffer-pool-size=64M", "--performance-schema=off",
			}, append(mariaAccount(), settings...)...)
		},
		answer: mariaAnswers,
	}, "mariadb-server")
}

// MariaDBURL is the address of the server's database as programs are given it.
func MariaDBURL(s *Server) string { return "mysql://root@" + s.Address() + "/ringi" }

// mariaAccount says whom root starts it as.
func mariaAccount() []string {
	if os.Getuid() != 0 {
		return nil
	}
	return []string{"--user=" + mariaUser}
}

// makeMariaDB makes the files of an empty server.
func makeMariaDB(ctx context.Context, s *Server) error {
	data := filepath.Join(s.dir, "data")
	if err := os.Mkdir(data, 0o700); err != nil {
		return fmt.Errorf("servertest: %w", err)
	}
	if os.Getuid() == 0 {
		if err := giveTo(mariaUser, s.dir, data); err != nil {
			return fmt.Errorf("servertest: %w", err)
		}
	}
	args := append([]string{"--no-defaults", "--datadir=" + data, "--auth-root-authentication-method=normal", "--skip-test-db"}, mariaAccount()...)
	if out, err := exec.CommandContext(ctx, "mariadb-install-db", args...).CombinedOutput(); err != nil {
		return fmt.Errorf("servertest: mariadb-install-db: %w\n%s", err, out)
	}
	// A database is a directory.
	database := filepath.Join(data, "ringi")
	if err := os.Mkdir(database, 0o700); err != nil {
		return fmt.Errorf("servertest: %w", err)
	}
	if os.Getuid() == 0 {
		return giveTo(mariaUser, s.dir, database)
	}
	return nil
}

// giveTo gives a directory to another account, which may pass through the one above.
func giveTo(account, above, dir string) error {
	who, err := user.Lookup(account)
	if err != nil {
		return err
	}
	uid, err := strconv.Atoi(who.Uid)
	if err != nil {
		return err
	}
	gid, err := strconv.Atoi(who.Gid)
	if err != nil {
		return err
	}
	if err := os.Chmod(above, 0o711); err != nil {
		return err
	}
	return os.Chown(dir, uid, gid)
}

// mariaAnswers reads the greeting, with which the server speaks first.
func mariaAnswers(ctx context.Context, s *Server) error {
	conn, err := dial(ctx, s.Address())
	if err != nil {
		return err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	greeting := make([]byte, 5) // its length, its number and the version of the protocol
	if _, err := io.ReadFull(conn, greeting); err != nil {
		return err
	}
	if greeting[4] != 10 {
		return fmt.Errorf("it says %v", greeting)
	}
	return nil
}
