-- What another engine calls an attempt that was handed over to it. On the lease while it is under way, with the attempt afterwards; the
-- ledger itself does not carry it, since most runs have none.

ALTER TABLE leases ADD COLUMN external_id text;
ALTER TABLE attempts ADD COLUMN external_id text;
