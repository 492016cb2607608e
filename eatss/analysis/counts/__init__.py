"""What a region has to do: exact counts of points, operations, least traffic."""
