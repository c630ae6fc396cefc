"""What the compiler reports: explain, profiles, pictures, differential checks."""
