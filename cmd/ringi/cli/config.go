package cli

import (
	"errors"
	"os"

	"github.com/ringiflow/ringi/config"
)

// readConfig reads the file that --config or RINGI_CONFIG names: a mapping of
// settings, by their names with underscores.
func (p *Program) readConfig() (map[string]config.Value, error) {
	name := p.settings.file
	if name == "" {
		name = p.Env("RINGI_CONFIG")
	}
	if name == "" {
		return nil, nil
	}
	src, err := os.ReadFile(p.Path(name))
	if err != nil {
		return nil, Usage("--config and RINGI_CONFIG name a file of settings", "%v", err)
	}
	var known []string
	for _, s := range allSettings() {
		known = append(known, s.key())
	}
	values, err := config.Parse(name, src, known)
	if wrong := (*config.Error)(nil); errors.As(err, &wrong) {
		return nil, Usage(wrong.Hint, "%s", wrong.Message)
	}
	return values, err
}
