// Package story puts what happens in a simulated world into plain words, for
// readers who did not write the simulator: the rules, what is done, and the
// events of a log. It keeps no state.
package story

// A Rule is a promise in two plain sentences.
type Rule struct {
	Broken string // what must never be
	Right  string // what would have been right
}

// RuleOf explains the rule that a check calls by one word, such as token. A word
// that is not known gives a rule without further explanation.
func RuleOf(word string) Rule {
	for _, rules := range []map[string]Rule{rulesOfCalls(), rulesOfRuns(), rulesOfStore()} {
		if r, ok := rules[word]; ok {
			return r
		}
	}
	return Rule{"Something happened that the design does not allow.", "It would not have happened; the observation says what it was."}
}

func rulesOfCalls() map[string]Rule {
	undone := "What was completed last is undone first, once nothing else of the run is under way."
	told := "An answer says only what the store holds for certain; until then the sender waits or is told to ask again."
	return map[string]Rule{
		"at_most_once":      {"A step whose effect must not happen twice was tried again although no person ordered it.", "Its outcome is unknown: the run stops with an incident and a person decides."},
		"attempt":           {"A result of another attempt than the one under way counted.", "Such a result is kept as evidence and moves nothing."},
		"begin":             {"A call was made or counted without the permission that its contract demands.", "The permission is in the log before the worker is told that it may begin."},
		"budget":            {"A step or undo was given more or fewer tries than its definition grants.", "The tries are counted for this call alone, and end where the definition says."},
		"double_effect":     {"An effect happened twice although its contract promises once.", "The second call is not made, or the service knows its key and does nothing."},
		"effect_after_undo": {"An effect happened after it was undone.", "Undoing waits until nothing can have the effect any more."},
		"effect_forgotten":  {"Something really happened, and the ended run neither did it, nor undid it, nor named it.", "Every effect is done, undone, or named as left standing."},
		"forward":           {"A step was begun or tried again although its run is being undone.", "A run that has turned around begins nothing new."},
		"hand_over":         {"A task whose worker never confirmed it counted as an attempt.", "The hand-over is taken back and the task handed out again; no try is used up."},
		"input":             {"A call was made with an input or key that is not the one of its schedule.", "A call keeps its input and its key for ever."},
		"key":               {"One call was made under two keys, or two calls under one.", "Each call of a step has one key for ever, and shares it with no other."},
		"late_effect":       {"A step had its effect after it was decided otherwise, and nobody will undo it.", "The late effect is written down and undone, or put before a person."},
		"lease":             {"A worker lost its task although its lease had not run out.", "A lease is given up only after its whole length without a sign of life."},
		"outage":            {"A node gave up an attempt although it had not reached the store for the length of a lease.", "After an outage every worker first gets a whole lease to make itself heard."},
		"probeable":         {"A call in doubt was tried again although nobody had asked the service what became of it.", "The service is asked first; if it does not know, a person decides."},
		"repeat":            {"A report that was sent once was called a repeat.", "The first report is accepted."},
		"report":            {"What a worker was told of its report is not what the log says.", told},
		"retry":             {"A step was tried again that had never begun.", "Only a call that is open has a next attempt."},
		"settled":           {"A step is to be undone although its service had said a definite no.", "There is nothing to undo: the step has failed without effect."},
		"given":             {"A worker was given a task that the store does not hold so.", "A task goes out when the store holds its token, and says what the log says."},
		"in_doubt":          {"What a run believes about an effect is not what its log tells.", "An effect is called not done only if every attempt failed for certain; else it is in doubt until something settles it."},
		"two_effects":       {"Two effects of one step may stand, and nobody was asked, or asked in vain.", "A person says how to go on, and until then the later attempt is held if it has not begun."},
		"token":             {"A worker's result counted under a token that is not the latest of its task.", "Only the holder of the latest token moves the run; an older result is evidence."},
		"two_calls":         {"A second attempt was scheduled while one was open.", "There is one attempt at a time."},
		"undo":              {"A step was undone that was not to be undone, or not yet; or the run ended without undoing it.", undone},
		"undo_order":        {"A step was undone before one that was completed after it.", undone},
	}
}

func rulesOfRuns() map[string]Rule {
	told := "An answer says only what the store holds for certain; until then the sender waits or is told to ask again."
	return map[string]Rule{
		"answer":        {"Somebody was told of a change that was not yet stored.", told},
		"doubt":         {"Somebody was answered while nobody knew whether the change was stored.", told},
		"unproved":      {"Somebody was answered without making sure that what the answer relies on is stored.", told},
		"refusal":       {"A command that is in order was refused.", "It is accepted, or told to come back."},
		"end":           {"A run ended as if it had been undone, and never turned around.", "The end says what really became of the run."},
		"turned_twice":  {"A run that was being undone was turned around once more.", "It turns around once, and that says as what it ends."},
		"final":         {"A run that had ended changed its end.", "An end is for ever."},
		"closed_log":    {"Something was written behind the end of a run.", "An ended run takes no more events."},
		"event":         {"An event and a wait were not brought together as they should have been.", "An event that was sent while its wait was open ends that wait, exactly once, however late anybody looks; any other does not."},
		"event_twice":   {"One wait was given the same event twice.", "A wait takes an event once."},
		"expired":       {"A vote counted after the approval had expired.", "From the instant of expiry on no vote counts."},
		"liveness":      {"All faults are over, and a run neither ends nor says what it waits for.", "Each run comes to its end, or names what it waits for."},
		"stuck":         {"A run is called running, and nothing is left that could ever move it.", "There is a task, timer, wait, approval or incident."},
		"flow":          {"A step was begun although the one before it did not come out well.", "A failure is caught, or turns the run around, or asks a person."},
		"incident":      {"A question to a person was closed in a way that is not open, or dropped.", "An incident stays until a person answers it in one of the ways that it names."},
		"message_lost":  {"A message was stored with its run and never delivered.", "Every stored message is delivered at least once."},
		"message_order": {"Messages of one aggregate arrived out of order.", "They arrive in the order in which they were stored."},
		"paused":        {"Something of a paused run went on.", "Nothing is handed out, begun or fired until the run is resumed."},
		"pivot":         {"A run turned around although something that cannot be undone had happened.", "Behind that step the run only goes forward; a person decides about what fails."},
		"quorum":        {"A step was approved without enough different people who may approve it.", "It stays open until distinct people fill every lane."},
		"start_key":     {"Two runs have the same start key.", "The second start is answered with the run of the first."},
		"time":          {"An event has an earlier time than the one before it.", "The time of a run never goes back."},
		"timer":         {"A timer fired that does not stand, or before its time.", "Only the timer that stands fires, under its generation, once it is due."},
		"vote":          {"A vote counted that must not count.", "Only people who are asked vote, once each, on what they were shown, and not on what they asked for."},
	}
}

func rulesOfStore() map[string]Rule {
	follows := "What stands in the store and in memory is exactly what the log of the run adds up to."
	return map[string]Rule{
		"cache":          {"A node holds a run in a state that its log does not add up to.", follows},
		"chain":          {"A log goes on from a history that is not the one that stands.", "The store compares the head of the chain, refuses the write, and the node reads the run anew."},
		"decide_changes": {"Deciding a command changed the state that it was decided on.", "Deciding only looks."},
		"decide_twice":   {"The same command on the same state was decided in two ways.", "The rules are a function: the same in gives the same out."},
		"log":            {"A row of a log cannot be read.", "Every row that is written can be read for ever."},
		"panic":          {"The program panicked.", "It decides, refuses, or quarantines the run."},
		"quarantined":    {"A node cannot read or decide a run.", "Every run can be read and decided."},
		"replay":         {"Folding the log again gives something else than what stands beside it.", follows},
		"rows":           {"The rows beside a log do not follow from it.", follows},
		"sequence":       {"The events of a run have a gap or a double.", "Events are numbered 1, 2, 3 and so on; a write on an old state is refused."},
		"snapshot":       {"A snapshot is not what the log adds up to.", follows},
	}
}
