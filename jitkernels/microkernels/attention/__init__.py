"""Scaled dot-product attention: prefill, decode, split over keys."""
