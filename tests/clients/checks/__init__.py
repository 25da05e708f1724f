"""Clients that others wrote, unmodified, against a real server."""
