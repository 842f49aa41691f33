package workflow

import (
	"errors"
	"fmt"
)

// Stored reads a definition that was published under a name and a digest. It is
// only what these say: whatever a run does follows from its source, so that one
// that was changed where it is kept is refused.
func Stored(name, digest string, source []byte) (*Definition, error) {
	def, problems := Parse(name, source)
	switch {
	case def == nil && len(problems) > 0:
		return nil, fmt.Errorf("its source cannot be read: %s", problems[0].Message)
	case def == nil:
		return nil, errors.New("its source cannot be read")
	case def.Digest != digest:
		return nil, fmt.Errorf("its source has the digest %s, it was published with %s: the source was changed", def.Digest, digest)
	case def.Name != name:
		return nil, fmt.Errorf("its source is of %s", def.Name)
	}
	return def, nil
}
