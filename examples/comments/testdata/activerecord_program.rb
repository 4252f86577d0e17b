# One deposit with Active Record; in a controller of Rails where LIBRARY says so.
require "uri"
require_relative "sql_comments"

SqlComments.root = File.join(__dir__, "")
url = URI(ENV.fetch("DATABASE_URL"))
ActiveRecord::Base.establish_connection(
  adapter: url.scheme == "postgres" ? "postgresql" : "mysql2", host: url.host, port: url.port, username: url.user,
  database: url.path.delete_prefix("/")
)

class Account < ActiveRecord::Base
  self.table_name = "account"
end

def deposit
  Account.transaction do
    account = Account.find(1) # READ
    account.balance += 10
    account.save! # WRITE
  end
end

if ENV["LIBRARY"] == "rails"
  require "action_controller"
  class AccountsController < ActionController::Base
    def show
      deposit
      head :ok
    end
  end
  status, = AccountsController.action(:show).call(Rack::MockRequest.env_for("/"))
  abort "status #{status}" unless status == 200
else
  SqlComments.action("accounts:deposit") { deposit }
end
