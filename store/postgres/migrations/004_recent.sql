-- The sweep for events and waits that missed each other looks at what is new,
-- and no longer at every wait that is open.
create index wait_opened on wait (opened_at);
create index sent_event_sent on sent_event (sent_at);
