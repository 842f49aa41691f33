package postgres

import (
	"context"
	"net"
)

// Dial connects as a store does and says how large a message may be.
func Dial(ctx context.Context, network, address string) (net.Conn, int, error) {
	nc, err := dial(ctx, network, address)
	if err != nil {
		return nil, 0, err
	}
	return nc, room(nc), nil
}

// Statements are the texts of all statements, by their names.
func Statements() map[string]string {
	return map[string]string{
		"textSight":            string(textSight),
		"textUnsee":            string(textUnsee),
		"textSightings":        string(textSightings),
		"textMeet":             string(textMeet),
		"textForget":           string(textForget),
		"textFormat":           string(textFormat),
		"textSeen":             string(textSeen),
		"textLeave":            string(textLeave),
		"textRaise":            string(textRaise),
		"textApprovalDelete":   string(textApprovalDelete),
		"textApprovalPut":      string(textApprovalPut),
		"textApprovals":        string(textApprovals),
		"textAudit":            string(textAudit),
		"textBeat":             string(textBeat),
		"textBeatOne":          string(textBeatOne),
		"textCheck":            string(textCheck),
		"textClaim":            string(textClaim),
		"textDefinitionInsert": string(textDefinitionInsert),
		"textDefinitionOf":     string(textDefinitionOf),
		"textDrop":             string(textDrop),
		"textEventExpire":      string(textEventExpire),
		"textEventLowest":      string(textEventLowest),
		"textEventInsert":      string(textEventInsert),
		"textEventOfID":        string(textEventOfID),
		"textIdentity":         string(textIdentity),
		"textIncidentDelete":   string(textIncidentDelete),
		"textIncidentPut":      string(textIncidentPut),
		"textIncidents":        string(textIncidents),
		"textKeyHolder":        string(textKeyHolder),
		"textLapse":            string(textLapse),
		"textLoad":             string(textLoad),
		"textLocks":            string(textLocks),
		"textLog":              string(textLog),
		"textLogAfter":         string(textLogAfter),
		"textLogDone":          string(textLogDone),
		"textLogTake":          string(textLogTake),
		"textLogTry":           string(textLogTry),
		"textMessages":         string(textMessages),
		"textMeta":             string(textMeta),
		"textNeeds":            string(textNeeds),
		"textNeedsTry":         string(textNeedsTry),
		"textPairsNew":         string(textPairsNew),
		"textPairsOf":          string(textPairsOf),
		"textPut":              string(textPut),
		"textQueue":            string(textQueue),
		"textQueueTenants":     string(textQueueTenants),
		"textQueues":           string(textQueues),
		"textReady":            string(textReady),
		"textReadyLowest":      string(textReadyLowest),
		"textRun":              string(textRun),
		"textRunTake":          string(textRunTake),
		"textRunTry":           string(textRunTry),
		"textRunUpdate":        string(textRunUpdate),
		"textSnapshotPut":      string(textSnapshotPut),
		"textStands":           string(textStands),
		"textStandsTry":        string(textStandsTry),
		"textTaskChange":       string(textTaskChange),
		"textTaskChangeTry":    string(textTaskChangeTry),
		"textTaskDelete":       string(textTaskDelete),
		"textTaskPut":          string(textTaskPut),
		"textTasksDue":         string(textTasksDue),
		"textTasksLowest":      string(textTasksLowest),
		"textTimerDelete":      string(textTimerDelete),
		"textTimerPut":         string(textTimerPut),
		"textTimersDue":        string(textTimersDue),
		"textTimersLowest":     string(textTimersLowest),
		"textTraces":           string(textTraces),
		"textWriting":          string(textWriting),
		"textWaitDelete":       string(textWaitDelete),
		"textWaitPut":          string(textWaitPut),
	}
}
