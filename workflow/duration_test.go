package workflow_test

import (
	"testing"
	"time"

	"github.com/ringiflow/ringi/workflow"
)

// A number of days that wraps around in nanoseconds is too long, not short.
func TestLongDurationsAreTooLong(t *testing.T) { // W3
	for _, text := range []string{"3651d", "213504d", "2147483647d", "2147483647h"} {
		if d, suggestion := workflow.ParseDuration(text); d <= workflow.MaxDuration || suggestion != "" {
			t.Errorf("%s is %v, %q", text, d, suggestion)
		}
	}
	if d, _ := workflow.ParseDuration("3650d"); d != 3650*24*time.Hour {
		t.Errorf("3650d is %v", d)
	}
}
