package wal

// PartitionOf is for tests that compare it with the database's.
func PartitionOf(tenant int64, aggregateID string) int { return partitionOf(tenant, aggregateID) }
