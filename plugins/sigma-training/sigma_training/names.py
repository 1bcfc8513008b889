"""Names in a snapshot: prefixes of arrays that are no part of the state itself."""

KEPT, UNDO = "kept.", "undo."  # copies that a hook keeps, former values for undo
LAST = "kept.."  # of the state in which training ended, if a hook has then brought back an earlier one
