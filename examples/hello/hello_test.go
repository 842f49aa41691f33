package main

import (
	"os"
	"testing"

	"github.com/ringiflow/ringi/workflow"
)

func TestTheProcessIsClean(t *testing.T) {
	src, err := os.ReadFile("hello.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if _, problems := workflow.Parse("hello.yaml", src); len(problems) > 0 {
		t.Error(problems)
	}
}
