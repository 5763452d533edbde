"""What one worker process does in a second, beside the worker processes of other engines on the same machine in the same run."""
