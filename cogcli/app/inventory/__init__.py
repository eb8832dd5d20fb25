"""What there is: skills, capabilities, bindings and services are listed, searched, shown and explained alike."""
