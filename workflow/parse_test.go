package workflow_test

import (
	"os"
	"testing"

	"github.com/ringiflow/ringi/workflow"
)

func TestTheOrderProcessOfTheDesignHasNoErrors(t *testing.T) {
	src, err := os.ReadFile("testdata/order_fulfilment.yaml")
	if err != nil {
		t.Fatal(err)
	}
	d, problems := workflow.Parse("order_fulfilment.yaml", src)
	for _, p := range problems {
		t.Log(p)
	}
	if d == nil {
		t.Fatal("no definition")
	}
}
