"""What examples of a named axis, or ranks of a mesh, compute together, and over which axes values differ."""
