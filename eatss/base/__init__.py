"""What every package stands on: findings, JSON, files, bounded processes, the cache."""
