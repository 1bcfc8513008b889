"""The commands of the trainer: one file each, its class with its fields, its effect and where it is legal."""
