"""Tables of any format as record batches of Arrow."""
