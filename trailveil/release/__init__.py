"""One recording: what is asked for, the plan, the draw."""
