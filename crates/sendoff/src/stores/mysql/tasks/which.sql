SELECT {:task} AS task
