-- An event's id is known in its tenant, whatever the name and key it came with.

create index sent_event_id on sent_event (tenant, id);
