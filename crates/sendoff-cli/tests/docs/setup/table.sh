sendoff migrate
