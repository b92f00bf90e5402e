"""The record: hash-chained events, masked before they are stored."""
