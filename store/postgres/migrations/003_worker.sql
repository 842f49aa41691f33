-- Which workers any node has seen, by the queues that they poll. queue is empty
-- for one that polls none. Changed every few seconds and kept for an hour.
create table worker (
  tenant    integer     not null,
  name      text collate "C" not null,
  queue     text collate "C" not null,
  polled_at timestamptz,
  seen_at   timestamptz not null,
  primary key (tenant, name, queue)
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);
