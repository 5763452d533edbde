"""`./dev bench worker`: compare one worker process with those of other engines, on the same machine in the same run."""
