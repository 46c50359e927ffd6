"""What a release promises, as text for people and as JSON for programs."""
