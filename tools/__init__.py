"""Development tools that are not part of the wheel: the simulation, the client generator, generators of documentation."""
