-- Usage that handlers report (tokens, money, any unit) and the budgets of workspaces. Budgets of jobs are in their definitions.

-- What each attempt of a run used. Attempt 0 is what was reported for the run as a whole. Deleted with its run.
CREATE TABLE run_usage (
    workspace_id uuid    NOT NULL,
    run_id       uuid    NOT NULL,
    attempt      integer NOT NULL,
    unit         text    NOT NULL,
    amount       numeric NOT NULL,
    CONSTRAINT run_usage_pkey PRIMARY KEY (run_id, attempt, unit),
    CONSTRAINT run_usage_unit_is_a_word CHECK (unit ~ '^[a-z][a-z0-9_.-]{0,39}$'),
    -- NaN is larger than every number.
    CONSTRAINT run_usage_amount_is_exact CHECK (amount > 0 AND amount < 'Infinity' AND scale(amount) <= 9)
);

-- Sums per UTC day of each job and of each workspace (subject_id is its own id): a month is at most 31 rows for each unit.
CREATE TABLE usage_days (
    workspace_id uuid    NOT NULL,
    subject_id   uuid    NOT NULL,
    day          date    NOT NULL,
    unit         text    NOT NULL,
    amount       numeric NOT NULL,
    CONSTRAINT usage_days_pkey PRIMARY KEY (subject_id, unit, day),
    CONSTRAINT usage_days_amount_is_not_negative CHECK (amount >= 0 AND amount < 'Infinity')
) WITH (fillfactor = 50);
CREATE INDEX usage_days_of_a_workspace ON usage_days (workspace_id, day);

CREATE TABLE budgets (
    workspace_id uuid    NOT NULL,
    unit         text    NOT NULL,
    period       text    NOT NULL,
    amount       numeric NOT NULL,
    warn_at      double precision,
    action       text    NOT NULL,
    CONSTRAINT budgets_pkey PRIMARY KEY (workspace_id, unit, period),
    CONSTRAINT budgets_workspace_exists FOREIGN KEY (workspace_id) REFERENCES workspaces (id),
    CONSTRAINT budgets_period_is_known CHECK (period IN ('day', 'month')),
    CONSTRAINT budgets_action_is_known CHECK (action IN ('pause', 'warn')),
    CONSTRAINT budgets_amount_is_not_negative CHECK (amount >= 0 AND amount < 'Infinity'),
    CONSTRAINT budgets_warn_at_is_a_share CHECK (warn_at BETWEEN 0 AND 1)
);

-- A used-up budget of a workspace closes its schedules until the period ends: the tick, which locks these rows, finds it without
-- another query. A row without a quota per day is one that was closed.
ALTER TABLE fire_quotas ALTER COLUMN per_day DROP NOT NULL, ADD COLUMN closed_until timestamptz;
GRANT INSERT, UPDATE (closed_until) ON fire_quotas TO foliot_engine;

DO $$
DECLARE
    each record;
    mine text := 'workspace_id = NULLIF(current_setting(''foliot.workspace'', true), '''')::uuid';
BEGIN
    FOR each IN SELECT * FROM (VALUES
        ('run_usage',  'SELECT, INSERT, UPDATE, DELETE', 'SELECT, INSERT, UPDATE, DELETE'),
        ('usage_days', 'SELECT, INSERT, UPDATE, DELETE', 'SELECT, INSERT, UPDATE, DELETE'),
        ('budgets',    'SELECT, INSERT, UPDATE, DELETE', 'SELECT')
    ) AS tables (name, app_may, engine_may) LOOP
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY', each.name);
        EXECUTE format('GRANT %s ON %I TO foliot_app', each.app_may, each.name);
        EXECUTE format('CREATE POLICY %I ON %I TO foliot_app USING (%s) WITH CHECK (%3$s)', each.name || '_own_workspace', each.name, mine);
        EXECUTE format('GRANT %s ON %I TO foliot_engine', each.engine_may, each.name);
        EXECUTE format(CASE each.engine_may WHEN 'SELECT' THEN 'CREATE POLICY %I ON %I FOR SELECT TO foliot_engine USING (true)'
                                            ELSE 'CREATE POLICY %I ON %I TO foliot_engine USING (true) WITH CHECK (true)' END,
                       each.name || '_engine', each.name);
    END LOOP;
END $$;
