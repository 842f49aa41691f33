package workflow

// documentRules are the rules about the text and its values.
func documentRules() []Rule {
	return []Rule{
		{ID: ruleUnknownKey, Title: "unknown key", Why: "A key that the language does not know is a typing error more often than not. If it were ignored, the process would silently do something else than the file says."},
		{ID: ruleLater, Title: "not available yet", Why: "The language will have this key, this version does not. It is refused rather than ignored, so that nobody relies on what does not happen."},
		{ID: ruleNotMapping, Title: "the document is not a mapping", Why: "A definition is a mapping of keys such as ringi, name and steps. A list or a single value cannot be one."},
		{ID: ruleSyntax, Title: "not YAML or JSON", Why: "The text cannot be read at all. Indentation with blanks, one colon and blank behind each key, and quotes around whole values avoid most of these."},
		{ID: ruleColon, Title: "colon inside an unquoted value", Why: "YAML ends an unquoted value at a colon followed by a blank. An expression such as a ? b : c has one, so the value must be quoted."},
		{ID: ruleBraces, Title: "unquoted expression inside brackets", Why: "Inside { } and [ ] YAML takes the braces of an expression for its own. Quote the value."},
		{ID: ruleComment, Title: "comment sign inside an expression", Why: "YAML takes a blank followed by # for the start of a comment and cuts the rest of the value off. Quote the value."},
		{ID: ruleTag, Title: "YAML tag", Why: "Tags (!name) would make values that JSON does not have. Most often one appears because a condition begins with the negation !, which must be quoted."},
		{ID: ruleMerge, Title: "merge key", Why: "The merge key << is not part of YAML 1.2 and has no counterpart in JSON. Common settings belong into defaults."},
		{ID: ruleAlias, Title: "broken alias", Why: "An alias repeats a value that stands elsewhere in the file under an anchor. It cannot repeat what does not exist, or the value that it stands in."},
		{ID: ruleTooLarge, Title: "definition too large", Why: "A definition is read by people and kept by every node. Its size is bounded before anything else is looked at, also when aliases multiply a small file."},
		{ID: ruleTooDeep, Title: "nested too deep", Why: "Lists and mappings inside each other are bounded, so that a definition can be read, shown and stored."},
		{ID: ruleNotUTF8, Title: "not UTF-8 text", Why: "A definition is text in UTF-8 without NUL characters."},
		{ID: ruleDuplicateKey, Title: "key given twice", Why: "Two equal keys in one mapping leave open which one counts; YAML and JSON programs disagree about it."},
		{ID: ruleDocuments, Title: "more than one document", Why: "A file holds one definition. A line with --- begins a second document."},
		{ID: ruleKey, Title: "key is not a word", Why: "Keys are words. A list, a mapping or nothing at all in the place of a key is most often a value that should have been quoted."},
		{ID: ruleNumber, Title: "number that cannot be kept exactly", Why: "Numbers are exact decimals of at most 34 digits, written as JSON writes them. Other forms are read differently by different programs."},
		{ID: ruleMissingKey, Title: "missing key", Why: "The language needs this key here."},
		{ID: ruleWrongKind, Title: "wrong kind of value", Why: "A text, a number, true or false, a list and a mapping are different things, and the language says which one it wants where."},
		{ID: ruleVersion, Title: "unknown version of the language", Why: "The key ringi names the version of the language, so that a later program can tell how a file was meant."},
		{ID: ruleName, Title: "bad name or text", Why: "Names, keys, titles and codes are at most 256 bytes on one line. They are stored in indexes, shown in lists and sent to other programs."},
		{ID: ruleIdentifier, Title: "bad identifier", Why: "Ids of steps, names of branches and variables are used inside expressions, so they consist of a lower-case letter followed by at most 63 lower-case letters, digits and underscores."},
		{ID: ruleDuration, Title: "bad duration", Why: "A duration is a whole number with one unit: 500ms, 90s, 15m, 4h or 3d. A day is 24 hours."},
		{ID: ruleWord, Title: "unknown word", Why: "Only a few words are allowed here."},
		{ID: ruleRange, Title: "number or duration out of range", Why: "The value is outside of what makes sense here."},
		{ID: ruleTooMany, Title: "too many", Why: "Steps, depth, branches, labels and expressions of a definition are bounded for every server."},
		{ID: ruleEmpty, Title: "nothing in it", Why: "An empty list or mapping here does nothing; it is most often an unfinished thought."},
		{ID: ruleConstant, Title: "expression where the text is fixed", Why: "What the engine, people and other programs must know when the definition is published cannot depend on a run."},
		{ID: ruleOneOf, Title: "only one of these", Why: "These keys exclude each other."},
		{ID: ruleInstant, Title: "not an instant", Why: "A point in time is written as in RFC 3339, with date, time and zone."},
		{ID: ruleSchema, Title: "not JSON Schema", Why: "Input and outputs are described in JSON Schema, draft 2020-12, without references to other documents."},
	}
}

// stepRules are the rules about steps and their order.
func stepRules() []Rule {
	return []Rule{
		{ID: ruleNoVerb, Title: "step without a verb", Why: "Each step does exactly one thing, and its verb says which."},
		{ID: ruleVerbs, Title: "step with two verbs", Why: "Each step does exactly one thing. What follows belongs into a step of its own."},
		{ID: ruleMissingID, Title: "step without an id", Why: "The id names the step in expressions, lists and the history of runs, and its idempotency key is made of it. Only fail and finish may go without."},
		{ID: ruleSameID, Title: "id used twice", Why: "An id names one step in the whole file, also across branches."},
		{ID: ruleNoEffect, Title: "key without effect", Why: "The key is known, but changes nothing where it stands. It would tell the reader something that is not so."},
		{ID: ruleUnreachable, Title: "step that is never reached", Why: "The step before ends the run or the branch in every case."},
		{ID: ruleFinishBeside, Title: "finish inside a parallel", Why: "Finishing completes the run, while other branches may still be at work."},
		{ID: ruleSetTwice, Title: "name set twice", Why: "A variable is set once in a scope, so that a reader knows its value wherever it is used."},
		{ID: ruleElse, Title: "misplaced else", Why: "A choose takes its first case whose condition holds, and else when none does. Else stands alone and last."},
		{ID: ruleNoElse, Title: "choose without else", Why: "Without else nothing happens when no condition holds. Say so, so that the reader knows it was meant."},
		{ID: ruleCatch, Title: "catch that never catches", Why: "The failure cannot happen to this step, or an entry above catches it already."},
		{ID: ruleCatchWord, Title: "catch word that looks misspelt", Why: "Words that the language does not know are taken for failure codes of the worker. This one is very near to a word of the language."},
		{ID: ruleEventKey, Title: "wait for an event without a key", Why: "An event is sent by name and key. Without a key the wait could not tell its own event from that of another run."},
		{ID: ruleTimes, Title: "attempt longer than the step", Why: "The time of one attempt can never be used up, since the time of the whole step ends before."},
		{ID: ruleOnFailure, Title: "verb not allowed in on_failure", Why: "The steps of on_failure run once after everything was undone. What can neither be repeated nor undone has no place there."},
		{ID: ruleReserved, Title: "name that is kept for the engine", Why: "Queues and activities whose names begin with ringi. are served by the engine itself. A worker of yours would never see such a task."},
		{ID: ruleURL, Title: "bad url", Why: "An http step calls a web server: https:// or http://, a host, and a path. What is fixed of the url is checked before anything runs, and must hold no secret, since everybody who reads the definition sees it."},
		{ID: ruleHeader, Title: "header that cannot be set", Why: "Some headers follow from the url, the body, the connection or the idempotency key, and a second word about them would contradict the first. A header has a name of letters, digits and hyphens, and a value on one line."},
	}
}

// effectRules are the rules about effects and their undoing.
func effectRules() []Rule {
	return []Rule{
		{ID: ruleNoContract, Title: "effect not declared", Why: "The engine must know what the step can bear when an answer is lost. Without a word it takes the safest reading, at_most_once, and asks a person."},
		{ID: ruleRetryOnce, Title: "retry of an at_most_once call", Why: "An at_most_once call is never tried twice, since the first attempt may have had its effect."},
		{ID: ruleNoProbe, Title: "probeable without a probe", Why: "Probeable means that the service can be asked whether the effect took place. The probe is that question."},
		{ID: rulePivotUndo, Title: "irreversible with a compensation", Why: "A step that can be undone is not irreversible. From an irreversible step on the run only goes forward."},
		{ID: rulePivotBeside, Title: "irreversible beside a branch that can fail", Why: "When the other branch fails, this effect stays, whatever else is undone."},
		{ID: ruleNoUndo, Title: "side effect without compensation", Why: "When the run fails later, everything is undone but this. Say how to undo it, or that it cannot be undone, or why that does not matter."},
		{ID: ruleUnapproved, Title: "irreversible without an approval", Why: "Nobody looks at what cannot be taken back. Ask somebody before it, or say why nobody needs to."},
		{ID: ruleUndoOutput, Title: "undo that needs the lost answer", Why: "An undo is also due when the answer of its step was lost, and then there is no output. The key that the step was called with always exists."},
		{ID: ruleUnknownUndo, Title: "compensate on unknown without a compensation", Why: "The step says that an unknown outcome is undone, but not how."},
		{ID: ruleHTTPEffect, Title: "http method whose effect nobody declared", Why: "GET and HEAD only read, and PUT and DELETE may be repeated, by the standard of HTTP. What a repeated POST or PATCH does, only its service can say."},
	}
}

// expressionRules are the rules about expressions.
func expressionRules() []Rule {
	return []Rule{
		{ID: ruleExpression, Title: "not an expression", Why: "The text inside ${ }, or of a condition, is not an expression of the language (CEL)."},
		{ID: ruleUnknownField, Title: "unknown field", Why: "The schema of the input or of the step's output has no such field. A missing field is an error in every run, never a silent null."},
		{ID: ruleUnknownRoot, Title: "unknown name", Why: "An expression begins with input, steps, vars, run or now, and where they exist step.key, error and event."},
		{ID: ruleTypes, Title: "types that do not fit", Why: "An operator or a function gets a value of a type that it cannot use. It would fail in every run."},
		{ID: ruleMaybeNotRun, Title: "step that may not have run", Why: "The step stands in a branch or behind a condition, or a failure of it is caught. Its outcome can always be read; its output needs .? and a value for the case that it is missing."},
		{ID: ruleLaterStep, Title: "step that has not run yet", Why: "The step stands further down, around this one, or in a branch beside it. It cannot have an output here."},
		{ID: ruleNotBool, Title: "condition that is not true or false", Why: "A condition must be true or false. There is no truth in numbers or texts."},
		{ID: ruleInterpolated, Title: "${ } inside a condition", Why: "Conditions are expressions already and stand without ${ }."},
		{ID: ruleTooLong, Title: "expression too long or too deep", Why: "An expression has at most 4 KiB and 32 levels. What takes more belongs into an activity."},
		{ID: ruleUnknownStep, Title: "unknown step", Why: "No step of the file has this id."},
		{ID: ruleUnknownFunction, Title: "unknown function", Why: "The language has no such function."},
		{ID: ruleMaybeMissing, Title: "field that may be missing", Why: "The schema does not require the field. Read it with .? and say what counts when it is missing."},
		{ID: ruleNullText, Title: "null inside a text", Why: "Null has no text. Say what to write instead."},
		{ID: ruleStartKey, Title: "start key that reads more than input", Why: "The start key decides whether a run begins at all. Before it begins there is nothing but the input."},
		{ID: ruleNeeds, Title: "value of the wrong type", Why: "The expression yields something that this place cannot use."},
	}
}

// peopleRules are the rules about approvers.
func peopleRules() []Rule {
	return []Rule{
		{ID: ruleQuorum, Title: "quorum that cannot be reached", Why: "More people must agree than are asked."},
		{ID: ruleWho, Title: "neither a group nor a user", Why: "Approvers are named as group:NAME or user:ID."},
		{ID: ruleSameLane, Title: "two lanes of one name", Why: "People see the names of the lanes and who is still needed in which."},
	}
}
