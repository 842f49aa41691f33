-- Which programs run on this database, so that a format is raised only when all
-- of them read it. A handful of rows, each updated in place every few seconds.
create table node (
  id      text collate "C" not null primary key,
  version text        not null,
  format  integer     not null,
  seen_at timestamptz not null
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);
