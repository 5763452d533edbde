-- A session of a browser is a key that stands for the key it was opened with: what it makes may last as long as that one.
ALTER TABLE api_keys ADD COLUMN session boolean NOT NULL DEFAULT false;
COMMENT ON COLUMN api_keys.session IS 'Opened by signing in. made_by is the key that was presented; NULL where another proof was, such as OpenID Connect.';
