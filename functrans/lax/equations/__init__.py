"""Equations whose solver is the user's, and whose derivatives come from the implicit function theorem."""
