package workflow

import (
	"embed"
	"slices"
)

// A Rule is one thing that the checker looks for. Its id is stable: scripts,
// suppressions and people refer to it, and it is never given to another rule.
type Rule struct {
	ID       string   `json:"id"` // for example "RG0001"
	Severity Severity `json:"severity"`
	Title    string   `json:"title"`
	Why      string   `json:"why"`   // why it is a rule
	Wrong    string   `json:"wrong"` // a definition that breaks it, and no other
	Right    string   `json:"right"` // the same, mended
}

// The examples of the rules: a definition that breaks the rule, the same
// mended, and where the checker shows the problem. They are what Explain shows
// and what the tests check.
//
//go:embed rules
var examples embed.FS

// Rules returns all rules in the order of their ids.
func Rules() []Rule {
	var out []Rule
	for _, group := range [][]Rule{documentRules(), quotaRules(), stepRules(), effectRules(), expressionRules(), peopleRules()} {
		for _, r := range group {
			out = append(out, r.complete())
		}
	}
	return out
}

// Explain returns the rule of that id, and false when there is none.
func Explain(id string) (Rule, bool) {
	rules := Rules()
	i := slices.IndexFunc(rules, func(r Rule) bool { return r.ID == id })
	if i < 0 {
		return Rule{}, false
	}
	return rules[i], true
}

// complete adds severity and examples.
func (r Rule) complete() Rule {
	r.Severity = severityOf(r.ID)
	for name, to := range map[string]*string{"wrong.yaml": &r.Wrong, "right.yaml": &r.Right} {
		text, err := examples.ReadFile("rules/" + r.ID + "/" + name)
		if err != nil {
			panic("workflow: a rule without an example: " + err.Error()) //nolint:forbidigo // the examples are embedded, and a test demands one for each rule
		}
		*to = string(text)
	}
	return r
}

// severityOf says which rules are findings; all others refuse the definition.
func severityOf(id string) Severity {
	switch id {
	case ruleNoElse, ruleCatchWord, ruleTimes, ruleNoContract, rulePivotBeside, ruleNoUndo, ruleUnapproved:
		return SeverityWarning
	}
	return SeverityError
}

// Rules about the text and its values.
const (
	ruleUnknownKey   = "RG0001"
	ruleLater        = "RG0002"
	ruleNotMapping   = "RG0003"
	ruleSyntax       = "RG0004"
	ruleColon        = "RG0005"
	ruleBraces       = "RG0006"
	ruleComment      = "RG0007"
	ruleTag          = "RG0008"
	ruleMerge        = "RG0009"
	ruleAlias        = "RG0010"
	ruleTooLarge     = "RG0011"
	ruleTooDeep      = "RG0012"
	ruleNotUTF8      = "RG0013"
	ruleDuplicateKey = "RG0014"
	ruleDocuments    = "RG0015"
	ruleKey          = "RG0016"
	ruleNumber       = "RG0017"
	ruleMissingKey   = "RG0018"
	ruleWrongKind    = "RG0019"
	ruleVersion      = "RG0020"
	ruleName         = "RG0021"
	ruleIdentifier   = "RG0022"
	ruleDuration     = "RG0023"
	ruleWord         = "RG0024"
	ruleRange        = "RG0025"
	ruleTooMany      = "RG0026"
	ruleEmpty        = "RG0027"
	ruleConstant     = "RG0028"
	ruleOneOf        = "RG0029"
	ruleInstant      = "RG0030"
	ruleSchema       = "RG0031"
	ruleQuotaSteps   = "RG0032"
	ruleQuotaDepth   = "RG0033"
	ruleQuotaWidth   = "RG0034"
)

// Rules about steps and their order.
const (
	ruleNoVerb       = "RG0101"
	ruleVerbs        = "RG0102"
	ruleMissingID    = "RG0103"
	ruleSameID       = "RG0104"
	ruleNoEffect     = "RG0105"
	ruleUnreachable  = "RG0106"
	ruleFinishBeside = "RG0107"
	ruleSetTwice     = "RG0108"
	ruleElse         = "RG0109"
	ruleNoElse       = "RG0110"
	ruleCatch        = "RG0111"
	ruleCatchWord    = "RG0112"
	ruleEventKey     = "RG0113"
	ruleTimes        = "RG0114"
	ruleOnFailure    = "RG0115"
	ruleReserved     = "RG0116"
	ruleURL          = "RG0117"
	ruleHeader       = "RG0118"
)

// Rules about effects and their undoing.
const (
	ruleNoContract  = "RG0201"
	ruleRetryOnce   = "RG0202"
	ruleNoProbe     = "RG0203"
	rulePivotUndo   = "RG0204"
	rulePivotBeside = "RG0205"
	ruleNoUndo      = "RG0206"
	ruleUnapproved  = "RG0207"
	ruleUndoOutput  = "RG0208"
	ruleUnknownUndo = "RG0209"
	ruleHTTPEffect  = "RG0210"
)

// Rules about expressions.
const (
	ruleExpression      = "RG0301"
	ruleUnknownField    = "RG0302"
	ruleUnknownRoot     = "RG0303"
	ruleTypes           = "RG0304"
	ruleMaybeNotRun     = "RG0305"
	ruleLaterStep       = "RG0306"
	ruleNotBool         = "RG0307"
	ruleInterpolated    = "RG0308"
	ruleTooLong         = "RG0309"
	ruleUnknownStep     = "RG0310"
	ruleUnknownFunction = "RG0311"
	ruleMaybeMissing    = "RG0312"
	ruleNullText        = "RG0313"
	ruleStartKey        = "RG0314"
	ruleNeeds           = "RG0315"
)

// Rules about approvers.
const (
	ruleQuorum   = "RG0401"
	ruleWho      = "RG0402"
	ruleSameLane = "RG0403"
)
