"""End runs: reports, lost leases, expired deadlines, and the effects on dependents."""
