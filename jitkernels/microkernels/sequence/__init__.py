"""Recurrent layers and Viterbi decoding."""
