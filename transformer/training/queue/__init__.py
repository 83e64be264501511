"""Who trains when: warm processes, a queue that is fair to people, and one limit for all servers of a folder."""
