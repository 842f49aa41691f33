package client

import (
	"encoding/json"
	"testing"
)

func TestMembersAreTakenAsJSONWhereTheyAre(t *testing.T) {
	got, err := withMembers(json.RawMessage(`{"a":9007199254740993,"b":1}`), []string{"b=0.10", "c=text", "d=\"2\"", "e=", "f={\"x\":[1]}", "g=a=b"})
	want := `{"a":9007199254740993,"b":0.10,"c":"text","d":"2","e":"","f":{"x":[1]},"g":"a=b"}`
	if err != nil || string(got) != want {
		t.Errorf("%s, %v, want %s", got, err, want)
	}
}
