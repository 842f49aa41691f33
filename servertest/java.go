//go:build unix

package servertest

import (
	"context"
	"crypto/sha256"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
)

//go:embed kafka/pom.xml
var kafkaPOM string

//go:embed debezium/pom.xml
var debeziumPOM string

// javaPackage is Debian's package of a Java that runs Kafka 4: 17 or newer.
const javaPackage = "default-jre-headless"

// FetchJava fetches what Kafka, Kafka Connect and Debezium are made of, through
// Maven and into its local repository. It is what the servers do themselves when
// they are started first; call it before tests that run side by side. What is
// there already costs no time.
func FetchJava(ctx context.Context) error {
	if _, err := program(ctx, "java", javaPackage); err != nil {
		return err
	}
	for _, pom := range []string{kafkaPOM, debeziumPOM} {
		if _, err := jars(ctx, pom); err != nil {
			return err
		}
	}
	return nil
}

// jars are the files that the dependencies of a pom.xml consist of. Which they
// are is kept in the user's cache, because asking Maven takes seconds.
func jars(ctx context.Context, pom string) ([]string, error) {
	cache, err := os.UserCacheDir()
	if err != nil { // a user without a home
		cache = os.TempDir()
	}
	dir := filepath.Join(cache, "ringi-servertest", fmt.Sprintf("%x", sha256.Sum256([]byte(pom)))[:16])
	if files := readJars(dir); files != nil {
		return files, nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("servertest: %w", err)
	}
	// Maven's local repository does not bear two who write to it.
	lock, err := os.Create(filepath.Join(filepath.Dir(dir), "lock"))
	if err != nil {
		return nil, fmt.Errorf("servertest: %w", err)
	}
	defer lock.Close()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return nil, fmt.Errorf("servertest: %w", err)
	}
	if files := readJars(dir); files != nil {
		return files, nil
	}
	if err := maven(ctx, dir, pom); err != nil {
		return nil, err
	}
	if files := readJars(dir); files != nil {
		return files, nil
	}
	return nil, errors.New("servertest: Maven named jars that are not there: look at its local repository")
}

// jarsFile is the file of a cache that names the jars, as a class path.
const jarsFile = "classpath"

// readJars reads what was kept; nil when it is not there or out of date.
func readJars(dir string) []string {
	text, err := os.ReadFile(filepath.Join(dir, jarsFile))
	if err != nil {
		return nil
	}
	files := strings.Split(strings.TrimSpace(string(text)), ":")
	for _, file := range files {
		if _, err := os.Stat(file); err != nil {
			return nil
		}
	}
	return files
}

// maven fetches the dependencies of a pom.xml and writes their files into dir.
func maven(ctx context.Context, dir, pom string) error {
	mvn, err := program(ctx, "mvn", "maven")
	if err != nil {
		return err
	}
	file, list := filepath.Join(dir, "pom.xml"), filepath.Join(dir, jarsFile)
	if err := os.WriteFile(file, []byte(pom), 0o644); err != nil {
		return fmt.Errorf("servertest: %w", err)
	}
	cmd := exec.CommandContext(ctx, mvn, "-B", "-q", "-f", file, "org.apache.maven.plugins:maven-dependency-plugin:build-classpath",
		"-Dmdep.includeScope=runtime", "-Dmdep.pathSeparator=:", "-Dmdep.outputFile="+list)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("servertest: Maven could not fetch what %s names (the first time this needs a network, or a mirror in Maven's settings): %w\n%s", file, err, out)
	}
	return nil
}

// javaOptions keep a machine small: these servers carry the load of a test, and
// half of the time of a short life would go to compiling well.
func javaOptions(files []string) []string {
	return []string{
		"-Xms32m", "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1",
		"-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", "-Dlog4j2.disable.jmx=true",
		"-cp", strings.Join(files, ":"),
	}
}
