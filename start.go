package ringi

import (
	"encoding/json"
	"fmt"
	"maps"

	"github.com/ringiflow/ringi/workflow"
)

// StartKey returns the start key of a start: the one it names, else the
// definition's start.key over the input, else "". A start.key that fails on
// this input is an *Error.
func StartKey(def *workflow.Definition, start Start, ev Evaluator) (string, error) {
	if start.Key != "" || def.StartKey == nil {
		return start.Key, nil
	}
	raw, err := ev.Value(def.StartKey, &workflow.Env{Input: start.Input})
	if err != nil {
		return "", refuse(CodeInvalid, fmt.Sprintf("start.key of %s fails on this input: %v", def.Name, err), "give a key with the start, or mend the input")
	}
	return text(raw), nil
}

func (t *turn) start(a Start) (Answer, error) {
	input := a.Input
	if len(input) == 0 {
		input = json.RawMessage("null")
	}
	digest := a.InputDigest
	if digest == "" {
		var err error
		if digest, err = workflow.Digest(input); err != nil {
			return Answer{}, refuse(CodeInvalid, "the input is not JSON that can be kept exactly: "+err.Error(), "mend the input")
		}
	}
	if h := t.holder(); h != nil {
		if h.InputDigest != digest {
			return Answer{}, refuse(CodeStartKeyConflict, fmt.Sprintf("start key %q belongs to run %s, which was started with other input", a.Key, h.Run), "use another key, or the same input")
		}
		return Answer{Outcome: Repeated, By: string(h.Run)}, nil
	}
	if t.s.Seq != 0 {
		return Answer{}, refuse(CodeInvalid, fmt.Sprintf("run %s has started already", t.s.Run), "")
	}
	requester := a.OnBehalfOf
	if requester == "" {
		requester = t.cmd.Actor.ID
	}
	t.s.Tenant, t.s.Run = t.cmd.Tenant, t.cmd.Run
	started := RunStarted{
		Definition: a.Definition, Version: a.Version, Digest: t.def.Digest, Key: a.Key,
		Input: input, InputDigest: digest, Requester: requester, Actor: t.cmd.Actor.ID,
		Labels: maps.Clone(t.def.Labels), EventID: a.EventID,
	}
	if a.Repair != nil {
		started.RepairOf = a.Repair.Of
	}
	started.Title = t.title(started)
	t.emit(started)
	if a.Repair != nil {
		t.startRepair(*a.Repair)
		return Answer{Outcome: Accepted}, nil
	}
	if d := t.def.Deadline; d != nil {
		t.emit(TimerSet{Timer: timerDeadline, Generation: 1, FireAt: t.cmd.At.Add(d.After), Moves: true})
	}
	t.openBlock(t.def.Root, "")
	return Answer{Outcome: Accepted}, nil
}

// holder is who holds the start key: a run that the store knows, or this very
// run when an earlier command of the same batch started it.
func (t *turn) holder() *Holder {
	if t.cmd.Lost != nil && t.cmd.Lost.Holder != nil {
		return t.cmd.Lost.Holder
	}
	if t.s.Seq != 0 && t.s.Key != "" {
		return &Holder{Run: t.s.Run, Seq: t.s.Seq, Version: t.s.Version, Status: t.s.Status(), InputDigest: t.s.InputDigest}
	}
	return nil
}

// title evaluates the definition's title; a title that fails is shown as its
// source, since nobody should lose a run over a caption.
func (t *turn) title(r RunStarted) string {
	if t.def.Title == nil {
		return ""
	}
	env := &workflow.Env{Input: r.Input, Now: t.cmd.At, Run: workflow.RunEnv{
		ID: string(t.cmd.Run), Key: r.Key, Requester: r.Requester, StartedAt: t.cmd.At,
	}}
	raw, err := t.ev.Value(t.def.Title, env)
	if err != nil {
		return clip(t.def.Title.Source())
	}
	return clip(text(raw))
}

const maxTitle = 256 // bytes; as all names

// clip shortens s to maxTitle bytes without cutting a rune.
func clip(s string) string {
	if len(s) <= maxTitle {
		return s
	}
	cut := maxTitle
	for cut > 0 && s[cut]&0xC0 == 0x80 {
		cut--
	}
	return s[:cut]
}

// text is a JSON value as plain text: a string without its quotes, anything
// else as it is written.
func text(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return s
	}
	return string(raw)
}
